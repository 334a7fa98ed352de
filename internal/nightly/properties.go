package main

// property is a test of the core that checks a law in random histories.
type property struct {
	test string
	// generator names what makes its histories up: each has a tally of its own.
	generator string
	// share is its part of all histories, in thousandths.
	share int
	// holds are the invariants of the design that it checks.
	holds string
}

// The generators. Tests with one of their own keep no tally.
const (
	byLaws  = "laws"
	byNaive = "naive"
	byTest  = "its own"
)

// properties are the tests, with the invariants that each holds.
var properties = []property{
	{"TestHistories", byLaws, 280, "I1 I2 I3 I4 I5 I6 I7 I8 I9 I12 I13"},
	{"TestAgree", byNaive, 250, "all, by a second implementation"},
	{"TestRefusalsLeaveNoTrace", byLaws, 50, "I6"},
	{"TestNothingIsStranded", byLaws, 50, "I5"},
	{"TestDecideAgreesWithApply", byLaws, 50, "I12"},
	{"TestRetryAfterComesTrue", byLaws, 50, "I12"},
	{"TestTakesAreForetold", byLaws, 20, "I12"},
	{"TestSharesAreForetold", byLaws, 20, "I12"},
	{"TestEarliestExpiryAndPollAfter", byLaws, 20, "I12"},
	{"TestHeldRetryAfterComesTrue", byLaws, 20, "I12"},
	{"TestExplanationsAgreeWithDecisions", byLaws, 20, "I12"},
	{"TestPicturesStay", byLaws, 20, "I12"},
	{"TestPollDelayIsNeverLate", byLaws, 30, "I12"},
	{"TestRestoredStatesGoOnAlike", byLaws, 40, "I13"},
	{"TestImagesAreReadBesideApply", byLaws, 10, "I13"},
	{"TestPollsServeByWeight", byTest, 40, "I10 I11"},
	{"TestGridDeliversEachBoundaryOnce", byTest, 20, "I5"},
	{"TestTokensRoundTrip", byTest, 10, "I4"},
}
