//! Names near to one that nobody knows.
//!
//! Owns: which names are near. Does not own: the names, what is said of them.
//! Invariants: the nearest comes first; of names equally near the first in the alphabet.

/// Most names that are offered.
const OFFERED_MAX: usize = 4;

/// The known names that somebody may have meant who wrote `name`: a few letters away, or with it inside.
pub fn near<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let far = 2.max(name.len() / 3);
    let inside = |known: &str| name.len() > 2 && known.contains(name);
    let distances = known.map(|known| (distance(name, known), known));
    let mut near: Vec<_> = distances.filter(|(letters, known)| *letters <= far || inside(known)).collect();
    near.sort_unstable();
    near.truncate(OFFERED_MAX);
    near.into_iter().map(|(_, known)| known).collect()
}

/// How many letters have to be put in, taken out or replaced to get from one word to the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (at, letter) in from.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for column in 1..=to.len() {
            let replaced = diagonal + usize::from(to[column - 1] != letter);
            diagonal = row[column];
            row[column] = replaced.min(diagonal + 1).min(row[column - 1] + 1);
        }
    }
    row[to.len()]
}
