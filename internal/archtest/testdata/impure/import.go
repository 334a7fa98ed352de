// Package impure breaks the rules of the core. Each line that does so says what
// a check is to answer.
package impure

import (
	_ "context"     // want "import: context is imported: nothing in the core waits"
	_ "crypto/rand" // want "import: crypto/rand"
	_ "encoding/binary"
	_ "errors"
	_ "hash/maphash" // want "its seed differs"
	_ "io"
	_ "io/fs"        // want "import: io/fs is imported"
	_ "log"          // want "import: log is imported"
	_ "log/slog"     // want "import: log/slog is imported: the core tells what it did in its results"
	. "math/bits"    // want "imported by dot"
	_ "math/rand"    // want "chance differs"
	_ "math/rand/v2" // want "chance differs"
	_ "net"          // want "import: net is imported"
	_ "os"           // want "import: os is imported"
	_ "reflect"      // want "import: reflect is imported"
	_ "regexp"       // want "it is not among the packages known to be pure"
	_ "runtime"      // want "the machine differs"
	_ "sync"         // want "one goroutine at a time"
	_ "sync/atomic"  // want "one goroutine at a time"
	_ "unsafe"       // want "addresses differ"

	_ "google.golang.org/protobuf/proto" // want "API, storage and core evolve apart"

	_ "github.com/tidwall/btree"
)

func width(n uint64) int { return Len64(n) }
