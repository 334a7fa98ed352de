package pagepart

import (
	"os"
	"path/filepath"
	"testing"
)

func TestPartsKeepToThemselves(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	for _, step := range []struct{ name, text, want string }{
		{"core", "# One\n", "<!-- core -->\n# One\n<!-- end of core -->\n"},
		{"peers", "# Two", "<!-- core -->\n# One\n<!-- end of core -->\n\n<!-- peers -->\n# Two\n<!-- end of peers -->\n"},
		{"core", "# Three", "<!-- core -->\n# Three\n<!-- end of core -->\n\n<!-- peers -->\n# Two\n<!-- end of peers -->\n"},
		{"peers", "", "<!-- core -->\n# Three\n<!-- end of core -->\n\n<!-- peers -->\n\n<!-- end of peers -->\n"},
	} {
		if err := Write(path, step.name, []byte(step.text)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != step.want {
			t.Fatalf("after writing %q as %s the page is %q (%v), want %q", step.text, step.name, got, err, step.want)
		}
	}
}

func TestHalfAPartIsRefused(t *testing.T) {
	for _, page := range []string{"<!-- core -->\nx\n", "x\n<!-- end of core -->\n", "<!-- end of core -->\n<!-- core -->\n"} {
		if got, err := put([]byte(page), "core", []byte("y")); err == nil {
			t.Errorf("%q became %q", page, got)
		}
	}
}

func TestThousands(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 999: "999", 1000: "1,000", 1234567.8: "1,234,568"} {
		if got := Thousands(v); got != want {
			t.Errorf("%v is %s, want %s", v, got, want)
		}
	}
}
