package system

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// Build builds the program of that package from the module in dir, which pins its
// version and those of all that it is made of.
func Build(ctx context.Context, dir, pkg, out string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", out, pkg)
	cmd.Dir = dir
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, said)
	}
	return nil
}

// ModuleVersion is the version of a module that the one in dir pins.
func ModuleVersion(ctx context.Context, dir, module string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", module)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("look up the version of %s: %w", module, err)
	}
	return strings.TrimSpace(string(out)), nil
}
