package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// expected says what the flags of a type take.
var expected = map[string]string{
	"int": "a whole number", "int32": "a whole number", "int64": "a whole number",
	"uint": "a whole number, 0 or more", "uint64": "a whole number, 0 or more",
	"float64": "a number", "bool": "true or false",
	"duration": "a duration such as 10s or 1h30m", "stringToInt64": "NAME=N with a whole number",
}

// flagError says what a flag takes in place of how its reading failed.
func flagError(_ *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	flag := invalid.GetFlag()
	want, ok := expected[flag.Value.Type()]
	if !ok {
		return &usageError{fmt.Sprintf("--%s: %v, got %q", flag.Name, errors.Unwrap(invalid), invalid.GetValue())}
	}
	return &usageError{fmt.Sprintf("--%s: expected %s, got %q", flag.Name, want, invalid.GetValue())}
}

// nameArguments has all commands below say which argument is missing or too many.
func nameArguments(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		nameArguments(sub)
	}
	check := cmd.Args
	if check == nil {
		return
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		if err == nil {
			return nil
		}
		for n := len(args) - 1; n >= 0; n-- {
			if check(cmd, args[:n]) == nil {
				return &usageError{fmt.Sprintf("unexpected argument %q", args[n])}
			}
		}
		words := arguments(cmd.Use)
		if len(args) >= len(words) {
			return err
		}
		example, _, _ := strings.Cut(strings.TrimSpace(cmd.Example), "\n")
		return &usageError{fmt.Sprintf("%s is missing, as in: %s", words[len(args)], example)}
	}
}

// inRequest leads to the one thing that a command asks for, where requests have lists.
var inRequest = regexp.MustCompile(`^(rows\[0\]\.tenant|entries\[0\])\.`)

// typedAs are the flags whose names are not those of the API's fields.
var typedAs = map[string]string{
	"lock_key": "lock", "dedupe_key": "dedupe", "max_wait": "wait", "due_in": "in", "due_at": "at", "buckets": "bucket",
}

// typed is a field of a request as a user of the command typed it: the name of a flag,
// if there is one. Without a command nothing was typed.
func typed(cmd *cobra.Command, field string) string {
	field = inRequest.ReplaceAllString(field, "")
	end := strings.IndexAny(field, ".[")
	if end < 0 {
		end = len(field)
	}
	name, rest := field[:end], field[end:]
	flag := strings.ReplaceAll(name, "_", "-")
	if other, ok := typedAs[name]; ok {
		flag = other
	}
	if cmd == nil || cmd.Flags().Lookup(flag) == nil {
		return field
	}
	return "--" + flag + rest
}
