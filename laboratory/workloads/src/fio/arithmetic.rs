//! fio's arithmetic in values, which begins with a parenthesis: `size=(8 * 4k) + 1m`.
//!
//! Owns: `+`, `-`, `*`, `/`, `%`, `^`, signs and parentheses.
//! Does not own: the numbers in it, with their units (`numbers`).
//! Invariants: results are whole numbers within fio's range; anything else is an error.

/// Deepest nesting of parentheses.
const DEEP_MAX: usize = 64;

/// Evaluates a value: arithmetic begins with a parenthesis; everything else is a number.
pub(super) fn worked_out(text: &str, plain: &mut dyn FnMut(&str) -> Result<u64, String>) -> Result<u64, String> {
    if !text.starts_with('(') {
        return plain(text);
    }
    let mut rest = Rest { text, left: text.trim(), plain, depth: 0 };
    let value = rest.sum()?;
    if !rest.left.is_empty() {
        return Err(format!("'{text}': '{}' is left over", rest.left));
    }
    u64::try_from(value).map_err(|_| format!("'{text}' is {value}, which is not within 0 to {}", i64::MAX))
}

struct Rest<'a> {
    text: &'a str,
    left: &'a str,
    plain: &'a mut dyn FnMut(&str) -> Result<u64, String>,
    depth: usize,
}

impl Rest<'_> {
    fn next_is(&mut self, letter: char) -> bool {
        let found = self.left.strip_prefix(letter);
        if let Some(left) = found {
            self.left = left.trim_start();
        }
        found.is_some()
    }

    fn wrong(&self, what: &str) -> String {
        format!("'{}': {what}", self.text)
    }

    fn checked(&self, value: Option<i128>) -> Result<i128, String> {
        let inside = value.filter(|value| value.unsigned_abs() <= i64::MAX as u128);
        inside.ok_or_else(|| self.wrong("the result is out of range"))
    }

    fn sum(&mut self) -> Result<i128, String> {
        let mut value = self.product()?;
        loop {
            value = if self.next_is('+') {
                let other = self.product()?;
                self.checked(value.checked_add(other))?
            } else if self.next_is('-') {
                let other = self.product()?;
                self.checked(value.checked_sub(other))?
            } else {
                return Ok(value);
            };
        }
    }

    fn product(&mut self) -> Result<i128, String> {
        let mut value = self.power()?;
        loop {
            value = if self.next_is('*') {
                let other = self.power()?;
                self.checked(value.checked_mul(other))?
            } else if self.next_is('/') {
                let other = self.power()?;
                value.checked_div(other).ok_or_else(|| self.wrong("it divides by zero"))?
            } else if self.next_is('%') {
                let other = self.power()?;
                value.checked_rem(other).ok_or_else(|| self.wrong("it divides by zero"))?
            } else {
                return Ok(value);
            };
        }
    }

    fn power(&mut self) -> Result<i128, String> {
        let value = self.one()?;
        if !self.next_is('^') {
            return Ok(value);
        }
        let power = self.power()?;
        let power = u32::try_from(power).ok().and_then(|power| value.checked_pow(power));
        self.checked(power)
    }

    fn one(&mut self) -> Result<i128, String> {
        if self.next_is('-') {
            return self.one().map(|value| -value);
        }
        if self.next_is('(') {
            self.depth += 1;
            if self.depth > DEEP_MAX {
                return Err(self.wrong("too many parentheses"));
            }
            let value = self.sum()?;
            self.depth -= 1;
            return if self.next_is(')') { Ok(value) } else { Err(self.wrong("a ')' is missing")) };
        }
        let end = self.left.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(self.left.len());
        if end == 0 {
            return Err(self.wrong("a number is missing"));
        }
        let value = (self.plain)(&self.left[..end])?;
        self.left = self.left[end..].trim_start();
        Ok(value.into())
    }
}

#[cfg(test)]
mod tests;
