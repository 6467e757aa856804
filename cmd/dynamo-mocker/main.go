// Command dynamo-mocker plays a container of the Dynamo runtime. Its arguments
// are the container's command and args, word for word.
//
//	dynamo-mocker python3 -m dynamo.vllm --model Qwen/Qwen3-0.6B
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/dynamo-operator/dynamo-operator/internal/mockengine"
	"github.com/dynamo-operator/dynamo-operator/internal/version"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "--version" {
		fmt.Println("dynamo-mocker version", version.String())
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	code := mockengine.Main(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}
