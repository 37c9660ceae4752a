// Command fetch downloads public data sets; scripts/datasets runs it.
package main

import (
	"os"

	"github.com/prelift/prelift/scripts/internal/datasets"
)

func main() { os.Exit(datasets.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
