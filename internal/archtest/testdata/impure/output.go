package impure

import (
	"fmt"
	"hash/fnv"
)

func tell(n int) error {
	fmt.Println(n)      // want "output: fmt.Println is used"
	fmt.Print(n)        // want "output: fmt.Print is used"
	fmt.Printf("%d", n) // want "output: fmt.Printf is used"
	_, _ = fmt.Scan(&n) // want "output: fmt.Scan is used"
	_, _ = fmt.Sscan("1", &n)
	h := fnv.New64a()
	fmt.Fprintf(h, "%d", n)
	println(n) // want "output: println is used"
	print(n)   // want "output: print is used"
	_ = fmt.Sprintf("%d", n)
	return fmt.Errorf("%d is not enough: %x", n, h.Sum64())
}
