// Goroutines sleep and count on the small stacks that Go gives them, in the middle of bytes that they know. Says "ready" when
// all do, and "intact" when its input ends and nothing is lost.
package main

// #include <stdlib.h>
// static void *get(void) { return malloc(1); }
import "C"

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"
)

const below = 600 // bytes below the stack pointer that the sleeping function leaves alone
const guard = 0xa5

var ends, running int32

func lost(what string) {
	fmt.Println("lost:", what)
	os.Exit(3)
}

// Fills the stack below its caller's frame, and returns where.
//
//go:noinline
func fill() uintptr {
	var bytes [below + 300]byte

	for i := range bytes {
		bytes[i] = guard
	}
	return uintptr(unsafe.Pointer(&bytes[0]))
}

// Below everything that a system call needs of the stack.
//
//go:noinline
func isFilled(low uintptr) bool {
	for i := uintptr(0); i < below; i++ {
		if *(*byte)(unsafe.Pointer(low + i)) != guard {
			return false
		}
	}
	return true
}

func sleep() {
	runtime.LockOSThread()
	atomic.AddInt32(&running, 1)
	for atomic.LoadInt32(&ends) == 0 {
		nap := syscall.Timespec{Nsec: 20000000}
		low := fill()
		_, _, failure := syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&nap)), 0, 0)
		if failure == 0 && !isFilled(low) {
			lost("bytes below the stack pointer")
		}
	}
}

func count() {
	atomic.AddInt32(&running, 1)
	for atomic.LoadInt32(&ends) == 0 {
		var bytes [256]byte
		sum := 0
		for turn := 0; turn < 200; turn++ {
			for i := range bytes {
				bytes[i] = byte(i + turn)
			}
			for i := range bytes {
				sum += int(bytes[i] - byte(turn))
			}
		}
		if sum != 200*255*128 {
			lost("a sum")
		}
		runtime.Gosched()
		nap := syscall.Timespec{Nsec: 1000000}
		syscall.Nanosleep(&nap, nil)
	}
}

// The first goroutine keeps the first thread.
func init() {
	runtime.LockOSThread()
}

func main() {
	var all sync.WaitGroup
	const sleepers, counters = 5, 2

	// Stacks stay where they are.
	debug.SetGCPercent(-1)
	C.free(C.get())
	start := func(work func(), times int) {
		for i := 0; i < times; i++ {
			all.Add(1)
			go func() {
				defer all.Done()
				work()
			}()
		}
	}
	start(sleep, sleepers)
	start(count, counters)
	for atomic.LoadInt32(&running) < sleepers+counters {
		runtime.Gosched()
	}
	go func() {
		os.Stdin.Read(make([]byte, 1))
		atomic.StoreInt32(&ends, 1)
	}()
	fmt.Println("ready")
	sleep()
	all.Wait()
	fmt.Println("intact")
}
