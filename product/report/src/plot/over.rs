//! Finds lines of a plot that lie on each other.
//!
//! Owns: comparing lines at places that both have.
//! Does not own: drawing them, the sentence about them (`plot`).
//! Invariants: a line is in one group at most; a group has two lines at least, in the order of the plot.

/// Number of places at which lines are compared: two pixels each on a wide plot.
const POSITIONS: usize = 340;

/// Largest distance of two lines, as a share of the height: two pixels.
const APART: f64 = 0.01;

/// Smallest share of common places at which the two lines must be this close.
const SAME: f64 = 0.97;

/// Groups of lines, by their indices. Points are in shares of the frame, from left to right.
pub(super) fn groups(lines: &[Vec<(f64, f64)>]) -> Vec<Vec<usize>> {
    let looked: Vec<Vec<Option<f64>>> = lines.iter().map(|points| looked_at(points)).collect();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (at, own) in looked.iter().enumerate().filter(|(at, _)| lines[*at].len() > 1) {
        match groups.iter_mut().find(|group| are_same(&looked[group[0]], own)) {
            Some(group) => group.push(at),
            None => groups.push(vec![at]),
        }
    }
    groups.retain(|group| group.len() > 1);
    groups
}

/// The height of a line at each place; none left of its first point and right of its last.
fn looked_at(points: &[(f64, f64)]) -> Vec<Option<f64>> {
    let mut next = 0;
    let look = |position: usize| {
        let x = position as f64 / (POSITIONS - 1) as f64;
        while next < points.len() && points[next].0 < x {
            next += 1;
        }
        let after = points.get(next)?;
        let Some(before) = next.checked_sub(1).map(|at| points[at]) else {
            return (after.0 <= x).then_some(after.1);
        };
        let part = (x - before.0) / (after.0 - before.0).max(1e-12);
        Some(before.1 + (after.1 - before.1) * part)
    };
    (0..POSITIONS).map(look).collect()
}

fn are_same(one: &[Option<f64>], other: &[Option<f64>]) -> bool {
    let (mut either, mut near) = (0, 0);
    for pair in one.iter().zip(other) {
        match pair {
            (None, None) => {}
            (Some(own), Some(its)) => {
                either += 1;
                near += usize::from((own - its).abs() <= APART);
            }
            _ => either += 1,
        }
    }
    either > 0 && near as f64 >= SAME * either as f64
}
