package impure

import "fmt"

func tell(n int) error {
	fmt.Println(n)            // want "output: fmt.Println is used"
	fmt.Print(n)              // want "output: fmt.Print is used"
	fmt.Printf("%d", n)       // want "output: fmt.Printf is used"
	fmt.Fprintf(nil, "no")    // want "output: fmt.Fprintf is used"
	_, _ = fmt.Scan(&n)       // want "output: fmt.Scan is used"
	_, _ = fmt.Sscan("1", &n) // want "output: fmt.Sscan is used"
	println(n)                // want "output: println is used"
	print(n)                  // want "output: print is used"
	_ = fmt.Sprintf("%d", n)
	return fmt.Errorf("%d is not enough", n)
}
