package impure

var ready = false

func init() {} // want "init: an init function"

type plan struct{}

func (plan) init() bool { return ready }
