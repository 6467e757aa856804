// Package text stands in for a tokenizer and a language model's taste: it
// counts tokens by rule of thumb and turns token positions into plain words.
// There is no vocabulary to download and the same prompt always gets the same
// answer.
package text

import (
	"hash/fnv"
	"strings"
	"unicode"
)

// Token is a token id.
type Token = uint32

// pieceLength is how many characters of a long word make one token.
const pieceLength = 4

// Tokenize cuts text at blanks and long words every four characters. Ids are
// hashes, so equal pieces are equal tokens.
func Tokenize(text string) []Token {
	var tokens []Token
	for _, word := range strings.FieldsFunc(text, unicode.IsSpace) {
		runes := []rune(word)
		for len(runes) > 0 {
			n := min(pieceLength, len(runes))
			tokens = append(tokens, hash(string(runes[:n])))
			runes = runes[n:]
		}
	}
	return tokens
}

func hash(piece string) Token {
	h := fnv.New32a()
	_, _ = h.Write([]byte(piece))
	return h.Sum32()
}

// Seed is the prompt's fingerprint, from which the answer follows.
func Seed(tokens []Token) uint64 {
	h := uint64(14695981039346656037)
	for _, token := range tokens {
		h = (h ^ uint64(token)) * 1099511628211
	}
	return h
}

// At returns the n-th token of the answer to a prompt, and its text. The first
// token of an answer carries no leading blank.
func At(seed uint64, n int) (Token, string) {
	x := seed + uint64(n)*0x9E3779B97F4A7C15
	x ^= x >> 30
	x *= 0xBF58476D1CE4E5B9
	x ^= x >> 27
	word := words[x%uint64(len(words))]
	switch {
	case n == 0:
		word = strings.ToUpper(word[:1]) + word[1:]
	case n%17 == 0:
		word = ". " + strings.ToUpper(word[:1]) + word[1:]
	case n%7 == 0:
		word = ", " + word
	default:
		word = " " + word
	}
	return hash(word), word
}

// NaturalLength is how long the answer is when nobody asked for a length.
func NaturalLength(seed uint64) int { return 48 + int(seed>>32%97) }

// Embedding returns a unit-ish vector that depends on the prompt alone.
func Embedding(seed uint64, dimensions int) []float64 {
	vector := make([]float64, dimensions)
	for i := range vector {
		seed = seed*6364136223846793005 + 1442695040888963407
		vector[i] = float64(int32(seed>>32)) / (1 << 31)
	}
	return vector
}

var words = strings.Fields(`the a of to and in that is it for on with as at by from this we you they
one two many first last long small great new old good true open free early late light deep clear
model token graph engine worker router cache block batch queue stream request answer prompt prefix
memory network cluster node pod service replica deployment operator schedule latency throughput
river mountain garden window table letter morning evening winter summer city road bridge harbour
bird tree stone water fire wind cloud star moon ocean island forest field valley village station
reads writes runs waits moves holds finds keeps gives takes brings sends shows grows turns opens
slowly quickly often never always again together apart above below between behind beyond within
because while after before until although when where which whose every each other another same`)
