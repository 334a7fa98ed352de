package server

import (
	"strconv"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/admission"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
	"github.com/admitd/admit/raftstore"
)

func writeSchedule(a raftstore.Answer, r *admission.ScheduleResult) *admitv1.ScheduleResponse {
	out := &admitv1.ScheduleResponse{Shedding: showShedding(a.Shedding)}
	if len(a.Parts) == 0 {
		out.Decided = append(out.Decided, writePlace(a.Place))
	}
	for _, p := range a.Parts {
		out.Decided = append(out.Decided, writePlace(p))
	}
	for i, e := range r.Entries {
		row := &admitv1.ScheduleResult{Status: scheduleStatuses[e.Status], Reason: reasons[e.Reason]}
		if e.Err != nil {
			row.Error = itemError(e.Err, "entries", i)
		}
		out.Results = append(out.Results, row)
	}
	return out
}

var scheduleStatuses = map[admission.ScheduleStatus]admitv1.ScheduleResult_Status{
	admission.Scheduled:         admitv1.ScheduleResult_STATUS_SCHEDULED,
	admission.ScheduleUnchanged: admitv1.ScheduleResult_STATUS_UNCHANGED,
	admission.ScheduleReplaced:  admitv1.ScheduleResult_STATUS_REPLACED,
	admission.ScheduleShed:      admitv1.ScheduleResult_STATUS_SHED,
	admission.ScheduleError:     admitv1.ScheduleResult_STATUS_ERROR,
}

// itemError is an error of the i-th item of a repeated field.
func itemError(err *admission.Error, field string, i int) *admitv1.ItemError {
	out := &admitv1.ItemError{Reason: string(err.Reason), Message: err.Message}
	if err.Field != "" {
		out.Field = field + "[" + strconv.Itoa(i) + "]." + err.Field
	}
	return out
}

// writeEntries makes a page of up to size rows; one more row says that there is
// another page.
func writeEntries(index uint64, l listing, rows []admission.ListedEntry) *admitv1.ListEntriesResponse {
	out := &admitv1.ListEntriesResponse{LogIndex: index}
	if len(rows) > l.size {
		rows = rows[:l.size]
		last := rows[l.size-1]
		out.NextPageToken = entryToken(l.filter, entryKey{due: last.DueAt, seq: last.Seq})
	}
	for _, e := range rows {
		out.Entries = append(out.Entries, writeEntry(e))
	}
	return out
}

func writeEntry(e admission.ListedEntry) *admitv1.Entry {
	out := &admitv1.Entry{
		Tenant:      e.Tenant,
		Key:         e.Key,
		Category:    e.Category,
		Lane:        e.Lane,
		Route:       e.Route,
		Group:       e.Group,
		State:       admitv1.EntryState_ENTRY_STATE_QUEUED,
		DueAt:       writeWall(e.DueAt),
		FirstDueAt:  writeWall(e.FirstDueAt),
		Attempts:    e.Attempts,
		MaxAttempts: e.MaxAttempts,
	}
	switch {
	case e.Claimed:
		out.State = admitv1.EntryState_ENTRY_STATE_CLAIMED
	case e.Dead:
		out.State, out.DiedAt = admitv1.EntryState_ENTRY_STATE_DEAD, writeWall(e.DiedAt)
	}
	for _, a := range e.History {
		out.History = append(out.History, &admitv1.Attempt{
			Number: a.Number, Outcome: failures[a.Outcome], EndedAt: writeWall(a.EndedAt), WorkerId: a.WorkerID,
		})
	}
	switch {
	case e.Every > 0:
		out.Recurrence = &admitv1.Entry_Every{Every: durationpb.New(e.Every)}
	case e.Cadence != "":
		out.Recurrence = &admitv1.Entry_Cadence{Cadence: e.Cadence}
	}
	return out
}

// failures are the outcomes of attempts that failed.
var failures = map[admission.Outcome]admitv1.Outcome{
	admission.OutcomeFailed:  admitv1.Outcome_OUTCOME_FAILED,
	admission.OutcomeDead:    admitv1.Outcome_OUTCOME_DEAD,
	admission.OutcomeExpired: admitv1.Outcome_OUTCOME_EXPIRED,
}

// writeDead makes a page as writeEntries does.
func writeDead(index uint64, l deadListing, rows []admission.ListedEntry) *admitv1.ListDeadResponse {
	out := &admitv1.ListDeadResponse{LogIndex: index}
	if len(rows) > l.size {
		rows = rows[:l.size]
		out.NextPageToken = deadToken(l.pool, l.filter, rows[l.size-1].Place)
	}
	for _, e := range rows {
		out.Entries = append(out.Entries, writeEntry(e))
	}
	return out
}
