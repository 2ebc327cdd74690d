//! Names near an unknown name: of knobs, devices, policies, options.
//!
//! Owns: which names are near, the question that offers them. Does not own: the names.
//! Invariants: the nearest comes first; equally near names are in alphabetical order.

/// The most names that are offered.
const OFFERED_MAX: usize = 4;

/// The known names that `name` may stand for: a few letters away, or with it inside.
pub fn near<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    // Many short names are a letter or two apart.
    let far = match name.len() {
        0..=2 => 0,
        3..=5 => 1,
        length => 2.max(length / 3),
    };
    let inside = |known: &str| name.len() > 2 && known.contains(name);
    let distances = known.map(|known| (distance(name, known), known));
    let mut near: Vec<_> = distances.filter(|(letters, known)| *letters <= far || inside(known)).collect();
    near.sort_unstable();
    near.truncate(OFFERED_MAX);
    near.into_iter().map(|(_, known)| known).collect()
}

/// A question to append to the unknown name in an error, or nothing if no known name is near.
pub fn did_you_mean<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let offered: Vec<String> = near(name, known).iter().map(|name| format!("'{name}'")).collect();
    match offered.split_last() {
        None => String::new(),
        Some((only, [])) => format!(" (did you mean {only}?)"),
        Some((last, others)) => format!(" (did you mean {} or {last}?)", others.join(", ")),
    }
}

/// The number of letters to insert, delete, replace or swap with a neighbour to turn one word into the other.
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for at in 0..from.len() {
        let mut next = vec![at + 1];
        for column in 0..to.len() {
            let replaced = row[column] + usize::from(from[at] != to[column]);
            let mut least = replaced.min(row[column + 1] + 1).min(next[column] + 1);
            if at > 0 && column > 0 && from[at] == to[column - 1] && from[at - 1] == to[column] {
                least = least.min(before[column - 1] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[to.len()]
}
