// Package page is what people see of a node in a browser: files that are part of the
// program, and how they are served. They hold no data. What the page shows it asks of
// the API, as anybody may who has a token.
package page

import (
	"embed"
	"io/fs"
	"net/http"
)

//go:embed assets
var embedded embed.FS

// policy lets the page load what comes from its own node, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Handler serves the page at /, and its parts beside it.
func Handler() http.Handler {
	assets, err := fs.Sub(embedded, "assets")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	files := http.FileServerFS(assets)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		head.Set("Content-Security-Policy", policy)
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("Referrer-Policy", "no-referrer")
		// After an update of the node the page must not be of both.
		head.Set("Cache-Control", "no-store")
		files.ServeHTTP(w, r)
	})
}
