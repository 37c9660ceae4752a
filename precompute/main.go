// Command precompute turns raw graphs into snapshots and batch sets; see the README.
package main

import (
	"os"

	"github.com/prelift/prelift/precompute/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
