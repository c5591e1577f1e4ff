// Command helper is what the test of the watcher needs: a receiver of alerts that refuses the first
// one, and a consumer that fails.
//
//	helper receive FILE   appends each alert to a file, a line for each; prints its address
//	helper nack           makes the next message of the agent of HIVE_SOCKET a dead letter
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"example.invalid/hive/clients/go"
)

func main() {
	var err error
	switch {
	case len(os.Args) == 3 && os.Args[1] == "receive":
		err = receive(os.Args[2])
	case len(os.Args) == 2 && os.Args[1] == "nack":
		err = nack()
	default:
		err = errors.New("usage: helper receive FILE | helper nack")
	}
	if err != nil {
		log.Fatal(err)
	}
}

func receive(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	var mu sync.Mutex
	requests := 0
	return http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if requests++; requests == 1 {
			http.Error(w, "not yet", http.StatusServiceUnavailable)
			return
		}
		var alerts []json.RawMessage
		if err := json.NewDecoder(r.Body).Decode(&alerts); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		for _, alert := range alerts {
			fmt.Fprintf(file, "%s\n", alert)
		}
	}))
}

func nack() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	h, err := hive.Connect("", nil)
	if err != nil {
		return err
	}
	defer h.Close()
	mail := h.Mail(ctx, nil)
	defer mail.Close()
	delivery, err := mail.Next(ctx)
	if err != nil {
		return err
	}
	_, err = delivery.Nack(ctx, errors.New("the order is not valid"), true)
	return err
}
