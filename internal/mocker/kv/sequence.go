package kv

// Sequence is one request's blocks: those of its prompt and of the tokens it
// has produced.
type Sequence struct {
	blockSize int
	sharing   bool
	tokens    []uint32
	blocks    []ID
	parent    ID // hash of the last full block
}

// NewSequence prepares the blocks of a prompt. Without sharing every block is
// private, as with prefix caching switched off.
func NewSequence(prompt []uint32, blockSize int, sharing bool) *Sequence {
	return &Sequence{blockSize: blockSize, sharing: sharing, tokens: append([]uint32(nil), prompt...), parent: seed}
}

// Len is the number of tokens.
func (s *Sequence) Len() int { return len(s.tokens) }

// Blocks is how many blocks the tokens need.
func (s *Sequence) Blocks() int { return (len(s.tokens) + s.blockSize - 1) / s.blockSize }

// Cached counts the tokens at the start that are in the cache already.
func (s *Sequence) Cached(m *Manager) int {
	if !s.sharing {
		return 0
	}
	return m.Known(Chain(s.tokens, s.blockSize)) * s.blockSize
}

// Allocate takes all blocks of the tokens, or none.
func (s *Sequence) Allocate(m *Manager) bool {
	for start := 0; start < len(s.tokens); start += s.blockSize {
		id := m.Private()
		if full := start+s.blockSize <= len(s.tokens); full && s.sharing {
			id = Next(s.parent, s.tokens[start:start+s.blockSize])
			s.parent = id
		}
		if !m.Use(id) {
			s.Free(m)
			return false
		}
		s.blocks = append(s.blocks, id)
	}
	return true
}

// Append adds a produced token, taking a new block when the last one is full.
// It fails, changing nothing, when there is no block to take.
func (s *Sequence) Append(m *Manager, token uint32) bool {
	if len(s.tokens)%s.blockSize == 0 {
		id := m.Private()
		if !m.Use(id) {
			return false
		}
		s.blocks = append(s.blocks, id)
	}
	s.tokens = append(s.tokens, token)
	if len(s.tokens)%s.blockSize == 0 && s.sharing {
		last := len(s.blocks) - 1
		s.parent = Next(s.parent, s.tokens[len(s.tokens)-s.blockSize:])
		m.Fill(s.blocks[last], s.parent)
		s.blocks[last] = s.parent
	}
	return true
}

// Free gives all blocks back. Full shared blocks stay known.
func (s *Sequence) Free(m *Manager) {
	for i, id := range s.blocks {
		if s.sharing && (i+1)*s.blockSize <= len(s.tokens) {
			m.Release(id)
		} else {
			m.Destroy(id)
		}
	}
	s.blocks = nil
	s.parent = seed
}
