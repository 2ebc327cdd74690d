//! Text for HTML and SVG.
//!
//! Owns: escaping, short numbers, the estimate of a text's width.
//! Does not own: documents (`html`) and drawings (`plot`, `bars`).
//! Invariants: the result of [`escape`] is inert inside an element and inside a quoted attribute.

#[cfg(test)]
mod tests;

/// Makes text inert. Control characters that XML does not allow become U+FFFD.
pub(crate) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\n' | '\t' => safe.push(letter),
            _ if letter.is_control() => safe.push('\u{fffd}'),
            _ => safe.push(letter),
        }
    }
    safe
}

/// The same for text that people read: a number stays on the line of its unit.
pub(crate) fn prose(text: &str) -> String {
    escape(&together(text))
}

/// Numbers and their units with a space between them at which no line ends.
pub(crate) fn together(text: &str) -> String {
    const UNITS: &[&str] = &[
        "%", "ns", "µs", "ms", "s", "min", "h", "B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB", "B/s", "kB/s",
        "MB/s", "GB/s", "Mbit/s", "Gbit/s",
    ];
    let mut joined = String::with_capacity(text.len());
    for piece in text.split_inclusive(' ') {
        let word = piece.trim_end_matches([' ', '\n', '.', ',', ';', ':', ')']);
        let number =
            joined.strip_suffix(' ').is_some_and(|before| before.ends_with(|letter: char| letter.is_ascii_digit()));
        if number && UNITS.contains(&word) {
            joined.pop();
            joined.push('\u{a0}');
        }
        joined.push_str(piece);
    }
    joined
}

/// A coordinate with at most one decimal.
pub(crate) fn coordinate(value: f64) -> String {
    let tenths = (value * 10.0).round() as i64;
    let sign = if tenths < 0 { "-" } else { "" };
    match (tenths.abs() / 10, tenths.abs() % 10) {
        (whole, 0) => format!("{sign}{whole}"),
        (whole, tenth) => format!("{sign}{whole}.{tenth}"),
    }
}

/// Estimate of the width of `text` in a sans-serif face of `size`, rather too wide than too narrow: the faces that
/// browsers choose differ by a tenth.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    let ems: f64 = text.chars().map(letter_ems).sum();
    ems * size
}

fn letter_ems(letter: char) -> f64 {
    match letter {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' => 0.34,
        'f' | 'r' | 't' | '(' | ')' | '-' | '/' | 'I' => 0.43,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 0.98,
        'A'..='Z' => 0.74,
        // Wide scripts fill the em.
        '\u{1100}'.. => 1.05,
        _ => 0.64,
    }
}

/// `text`, cut with an ellipsis so that it is at most `width` wide.
pub(crate) fn cut(text: &str, size: f64, width: f64) -> String {
    if text_width(text, size) <= width {
        return text.to_owned();
    }
    let mut left = width - text_width("…", size);
    let fits = |letter: &char| {
        left -= letter_ems(*letter) * size;
        left >= 0.0
    };
    let mut short: String = text.chars().take_while(fits).collect();
    short.push('…');
    short
}
