// Waits for a byte. As Go links programs that use nothing of C's.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Println("ready")
	os.Stdin.Read(make([]byte, 1))
	fmt.Println("intact")
}
