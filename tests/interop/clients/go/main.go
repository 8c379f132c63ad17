// Locks of Go libraries behind the line protocol of tests/interop/README.md: clients LIBRARY URL [URL ...]
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// A lock as each library has it.
type lock interface {
	take(waits bool) (bool, error)
	extend(ttl time.Duration) (bool, error)
	unlock() (bool, error)
}

var clients []*redis.Client

type byRedsync struct{ mutex *redsync.Mutex }

func newRedsync(name string, ttl time.Duration) lock {
	pools := []redsyncredis.Pool{}
	for _, client := range clients {
		pools = append(pools, goredis.NewPool(client))
	}
	return &byRedsync{redsync.New(pools...).NewMutex(name, redsync.WithExpiry(ttl), redsync.WithTries(1<<30),
		redsync.WithRetryDelayFunc(func(int) time.Duration { return time.Duration(50+rand.Intn(200)) * time.Millisecond }))}
}

func (l *byRedsync) take(waits bool) (bool, error) {
	var err error
	if waits {
		err = l.mutex.Lock()
	} else {
		err = l.mutex.TryLock()
	}
	return err == nil, err
}

// It extends by the time with which the mutex was made.
func (l *byRedsync) extend(time.Duration) (bool, error) { return l.mutex.Extend() }
func (l *byRedsync) unlock() (bool, error)              { return l.mutex.Unlock() }

type byRedislock struct {
	name string
	ttl  time.Duration
	lock *redislock.Lock
}

func (l *byRedislock) take(waits bool) (bool, error) {
	options := &redislock.Options{}
	context, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	if waits {
		options.RetryStrategy = redislock.LinearBackoff(50 * time.Millisecond)
	}
	var err error
	l.lock, err = redislock.New(clients[0]).Obtain(context, l.name, l.ttl, options)
	return err == nil, err
}
func (l *byRedislock) extend(ttl time.Duration) (bool, error) {
	err := l.lock.Refresh(context.Background(), ttl, nil)
	return err == nil, err
}
func (l *byRedislock) unlock() (bool, error) {
	err := l.lock.Release(context.Background())
	return err == nil, err
}

func newLock(library, name string, ttl time.Duration) lock {
	if library == "redsync" {
		return newRedsync(name, ttl)
	}
	return &byRedislock{name: name, ttl: ttl}
}

func version(library string) string {
	module := map[string]string{"redsync": "go-redsync/redsync", "bsm-redislock": "bsm/redislock"}[library]
	info, _ := debug.ReadBuildInfo()
	for _, one := range info.Deps {
		if strings.Contains(one.Path, module) {
			return strings.TrimPrefix(one.Version, "v")
		}
	}
	return "?"
}

func milliseconds(word string) time.Duration {
	number, _ := strconv.Atoi(word)
	return time.Duration(number) * time.Millisecond
}

func sections(library string, words []string) (bool, error) {
	count, _ := strconv.Atoi(words[1])
	for i := 0; i < count; i++ {
		l := newLock(library, words[0], milliseconds(words[3]))
		if ok, err := l.take(true); !ok {
			return false, err
		}
		text, err := os.ReadFile(words[2])
		if err != nil {
			return false, err
		}
		number, err := strconv.Atoi(string(text))
		if err != nil {
			return false, err
		}
		time.Sleep(time.Millisecond)
		if err := os.WriteFile(words[2], []byte(strconv.Itoa(number+1)), 0o600); err != nil {
			return false, err
		}
		if ok, err := l.unlock(); !ok {
			return false, err
		}
	}
	return true, nil
}

func main() {
	library := os.Args[1]
	for _, url := range os.Args[2:] {
		options, err := redis.ParseURL(url)
		if err != nil {
			panic(err)
		}
		options.DisableIdentity = true
		clients = append(clients, redis.NewClient(options))
	}
	out := json.NewEncoder(os.Stdout)
	out.Encode(map[string]string{"event": "ready", "version": version(library)})
	var current lock
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		words := strings.Fields(lines.Text())
		command, words := words[0], words[1:]
		var ok bool
		var err error
		switch command {
		case "quit":
			return
		case "try", "lock":
			l := newLock(library, words[0], milliseconds(words[1]))
			if ok, err = l.take(command == "lock"); ok {
				current = l
			}
		case "extend":
			ok, err = current.extend(milliseconds(words[0]))
		case "unlock":
			ok, err = current.unlock()
		case "sections":
			ok, err = sections(library, words)
		default:
			err = errors.New("it has none")
		}
		text := ""
		if err != nil {
			text = fmt.Sprint(err)
		}
		out.Encode(map[string]any{"command": command, "ok": ok, "error": text, "at": float64(time.Now().UnixMicro()) / 1000})
	}
}
