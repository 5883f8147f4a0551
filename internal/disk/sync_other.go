//go:build !linux

package disk

import "errors"

func (f *file) Sync() error { return f.File.Sync() }

// TryLock is not built for this system; the holder's description decides (see package eventlog).
func (f *file) TryLock() (bool, error) { return false, errors.ErrUnsupported }

func (f *file) Lock() error { return errors.ErrUnsupported }
