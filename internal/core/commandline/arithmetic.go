package commandline

import (
	"fmt"
	"strconv"
	"strings"
)

// evaluate computes a shell arithmetic expression over integers. Names without
// '$' are looked up; unset and empty variables count as 0.
func evaluate(expression string, lookup func(string) (string, bool)) (int64, error) {
	c := calculator{text: expression, lookup: lookup}
	if strings.TrimSpace(expression) == "" {
		return 0, nil
	}
	n := c.binary(0)
	c.blanks()
	if c.err == nil && c.at < len(c.text) {
		c.fail("unexpected " + strconv.Quote(c.text[c.at:]))
	}
	return n, c.err
}

// levels of binary operators, loosest first; within a level longest first.
var levels = [][]string{{"||"}, {"&&"}, {"==", "!="}, {"<=", ">=", "<", ">"}, {"+", "-"}, {"*", "/", "%"}}

type calculator struct {
	text   string
	at     int
	depth  int
	lookup func(string) (string, bool)
	err    error
}

func (c *calculator) fail(reason string) {
	if c.err == nil {
		c.err = fmt.Errorf("arithmetic %q: %s", c.text, reason)
	}
}

func (c *calculator) blanks() {
	for c.at < len(c.text) && strings.IndexByte(" \t\r\n", c.text[c.at]) >= 0 {
		c.at++
	}
}

func (c *calculator) binary(level int) int64 {
	if level == len(levels) {
		return c.unary()
	}
	left := c.binary(level + 1)
	for c.err == nil {
		op := c.operator(levels[level])
		if op == "" {
			return left
		}
		left = c.apply(op, left, c.binary(level+1))
	}
	return left
}

func (c *calculator) operator(among []string) string {
	c.blanks()
	for _, op := range among {
		if strings.HasPrefix(c.text[c.at:], op) {
			c.at += len(op)
			return op
		}
	}
	return ""
}

func (c *calculator) apply(op string, a, b int64) int64 {
	switch op {
	case "+":
		return a + b
	case "-":
		return a - b
	case "*":
		return a * b
	case "/", "%":
		if b == 0 {
			c.fail("division by zero")
			return 0
		}
		if b == -1 { // the one quotient that does not fit would trap
			if op == "/" {
				return -a
			}
			return 0
		}
		if op == "/" {
			return a / b
		}
		return a % b
	}
	holds := false
	switch op {
	case "==":
		holds = a == b
	case "!=":
		holds = a != b
	case "<":
		holds = a < b
	case ">":
		holds = a > b
	case "<=":
		holds = a <= b
	case ">=":
		holds = a >= b
	case "&&":
		holds = a != 0 && b != 0
	case "||":
		holds = a != 0 || b != 0
	}
	if holds {
		return 1
	}
	return 0
}

func (c *calculator) unary() int64 {
	c.depth++
	if c.depth > maxDepth {
		c.fail("nested too deeply")
	}
	defer func() { c.depth-- }()
	c.blanks()
	if c.err != nil || c.at >= len(c.text) {
		c.fail("operand expected")
		return 0
	}
	switch c.text[c.at] {
	case '-':
		c.at++
		return -c.unary()
	case '+':
		c.at++
		return c.unary()
	case '!':
		c.at++
		if c.unary() == 0 {
			return 1
		}
		return 0
	case '(':
		c.at++
		n := c.binary(0)
		if c.operator([]string{")"}) == "" {
			c.fail("expected )")
		}
		return n
	}
	return c.operand()
}

func (c *calculator) operand() int64 {
	rest := c.text[c.at:]
	digits := 0
	for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
		digits++
	}
	if digits > 0 {
		c.at += digits
		return c.number(rest[:digits])
	}
	name := variableName(rest)
	if name == "" || strings.IndexByte("@*#?$!-", name[0]) >= 0 {
		c.fail("operand expected at " + strconv.Quote(rest))
		return 0
	}
	c.at += len(name)
	value, _ := c.lookup(name)
	if value = strings.TrimSpace(value); value == "" {
		return 0
	}
	return c.number(value)
}

func (c *calculator) number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		c.fail("not a number: " + strconv.Quote(text))
	}
	return n
}
