package system

import (
	"fmt"
	"os"
	"os/exec"
)

// Self is this program again, as the server of that name: see its main.
func Self(server string, args ...string) (*exec.Cmd, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	return exec.Command(program, append([]string{"serve", server}, args...)...), nil
}
