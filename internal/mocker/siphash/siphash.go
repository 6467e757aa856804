// Package siphash is SipHash-1-3 with a zero key, the hash that names runtime
// instances: one compression round a block, three at the end. It is no general
// hash library; the common Go ones are SipHash-2-4 and give other names.
package siphash

import (
	"encoding/binary"
	"math/bits"
)

// Sum13 hashes data with keys (0, 0).
func Sum13(data []byte) uint64 {
	s := state{0x736f6d6570736575, 0x646f72616e646f6d, 0x6c7967656e657261, 0x7465646279746573}
	length := len(data)
	for ; len(data) >= 8; data = data[8:] {
		s.block(binary.LittleEndian.Uint64(data))
	}
	var last [8]byte
	copy(last[:], data)
	last[7] = byte(length)
	s.block(binary.LittleEndian.Uint64(last[:]))
	s[2] ^= 0xff
	for range 3 {
		s.round()
	}
	return s[0] ^ s[1] ^ s[2] ^ s[3]
}

type state [4]uint64

func (s *state) block(m uint64) {
	s[3] ^= m
	s.round()
	s[0] ^= m
}

func (s *state) round() {
	s[0] += s[1]
	s[1] = bits.RotateLeft64(s[1], 13) ^ s[0]
	s[0] = bits.RotateLeft64(s[0], 32)
	s[2] += s[3]
	s[3] = bits.RotateLeft64(s[3], 16) ^ s[2]
	s[0] += s[3]
	s[3] = bits.RotateLeft64(s[3], 21) ^ s[0]
	s[2] += s[1]
	s[1] = bits.RotateLeft64(s[1], 17) ^ s[2]
	s[2] = bits.RotateLeft64(s[2], 32)
}
