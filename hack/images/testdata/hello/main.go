// Command hello is small enough to be built for every platform in a test.
package main

func main() { println("hello") }
