package impure

func together(done chan bool) { // want "concurrency: a channel"
	go func() {}()   // want "concurrency: a go statement"
	done <- true     // want "concurrency: a channel"
	<-done           // want "concurrency: a channel"
	for range done { // want "concurrency: a channel"
	}
	select {} // want "concurrency: a select"
}

func inferred() {
	c := pipe() // want "concurrency: a channel"
	close(c)    // want "concurrency: a channel"
}

func pipe() (c chan int) { return } // want "concurrency: a channel"

func alone(f func()) {
	defer f()
	func() {}()
}
