// The stored position.

package main

import (
	"encoding/json"
	"fmt"
	"os"

	"example.invalid/hive/clients/go"
)

// load returns the stored position; os.ErrNotExist if there is none.
func load(path string) (hive.Position, error) {
	var position hive.Position
	text, err := os.ReadFile(path)
	if err != nil {
		return position, err
	}
	if err := json.Unmarshal(text, &position); err != nil || position.LogID == "" {
		return position, fmt.Errorf("%s has no position; delete it to begin at the end of the log", path)
	}
	return position, nil
}

// store replaces the file as a whole: after a crash it has the old or the new position.
func store(path string, position hive.Position) error {
	text, err := json.Marshal(position)
	if err != nil {
		return err
	}
	// A fixed name: what a crash leaves behind is overwritten.
	file, err := os.Create(path + ".new")
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Write(append(text, '\n')); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	// The directory is not synced: after a crash the older position repeats some alerts.
	return os.Rename(file.Name(), path)
}
