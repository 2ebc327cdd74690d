//! Sentences that are hard to read.
//!
//! Owns: the three kinds: too long, a headless clause ("who writes waits"), a stack of pronouns.
//! Does not own: where a sentence ends (`sentences`).
//! Invariants: a sentence may be of several kinds, and is of each once.

/// A longer sentence is hard.
const WORDS_MAX: usize = 30;

/// So many pronouns are a stack if they are more than a fifth of the words.
const PRONOUNS_MIN: usize = 4;

/// Words that begin a clause in a noun's place.
const HEADLESS: &[&str] = &["who", "what", "whoever", "whatever", "whom", "whose"];

/// Words after which a noun is due.
const BEFORE: &str = "and or but of for by to with from in on than as that is are says say said know knows see sees if \
    when while because after before";

const PRONOUNS: &str = "it its they them their this these those that one ones such other others another here there thereof \
    somebody nobody everybody anybody something nothing";

/// Pronouns of two words.
const PAIRS: &[[&str; 2]] = &[["so", "much"], ["so", "many"], ["the", "same"], ["the", "former"], ["the", "latter"]];

/// The kinds that a sentence is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Kinds {
    pub(super) is_long: bool,
    pub(super) is_headless: bool,
    pub(super) is_stack: bool,
}

/// Finds the kinds of a sentence.
pub(super) fn kinds(sentence: &str) -> Kinds {
    let count = word_count(sentence);
    let lower = sentence.to_lowercase();
    let words = words(&lower);
    let pronouns = pronouns(&words);
    Kinds {
        is_long: count > WORDS_MAX,
        is_headless: (0..words.len()).any(|at| is_headless(&words, at)),
        is_stack: pronouns >= PRONOUNS_MIN && pronouns * 5 > count,
    }
}

/// How many words a sentence has: an apostrophe or a hyphen is a part of one, numbers are none.
pub(super) fn word_count(sentence: &str) -> usize {
    let inside = |letter: char| letter.is_ascii_alphabetic() || "'’-".contains(letter);
    let runs = sentence.split(|letter: char| !inside(letter));
    runs.filter(|run| run.contains(|letter: char| letter.is_ascii_alphabetic())).count()
}

fn is_among(words: &str, word: &str) -> bool {
    words.split(' ').any(|one| one == word)
}

/// A word, with the text between the previous word and this word.
struct Word<'a> {
    between: &'a str,
    text: &'a str,
    /// The rest of the sentence.
    after: &'a str,
}

fn words(sentence: &str) -> Vec<Word<'_>> {
    let is_inside = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut words = Vec::new();
    let mut rest = sentence;
    while let Some(begin) = rest.find(is_inside) {
        let word = &rest[begin..];
        let len = word.find(|letter| !is_inside(letter)).unwrap_or(word.len());
        words.push(Word { between: &rest[..begin], text: &word[..len], after: &word[len..] });
        rest = &word[len..];
    }
    words
}

fn is_blank(between: &str) -> bool {
    !between.is_empty() && between.trim().is_empty()
}

/// Whether a clause without a noun begins with this word: a verb follows, and a noun was due.
fn is_headless(words: &[Word<'_>], at: usize) -> bool {
    let word = &words[at];
    if !HEADLESS.contains(&word.text) {
        return false;
    }
    let is_due = match at.checked_sub(1) {
        None if word.between.is_empty() => true,
        Some(before) if is_blank(word.between) => is_among(BEFORE, words[before].text),
        _ => word.between.trim_end().ends_with([',', ';', ':', '(']),
    };
    let verb = word.after.trim_start();
    let len = verb.find(|letter: char| !letter.is_ascii_lowercase() && letter != '\'').unwrap_or(verb.len());
    let goes_on = word.after.starts_with(' ') && len > 0 && verb[len..].starts_with(' ');
    let next = |by: usize| words.get(at + by).map(|word| word.text);
    let is_question = next(1) == Some("kind") || next(1) == Some("is") && next(2) == Some("it");
    is_due && goes_on && !is_question
}

fn pronouns(words: &[Word<'_>]) -> usize {
    let pair = |two: &[Word<'_>]| PAIRS.contains(&[two[0].text, two[1].text]) && two[1].between == " ";
    let single = words.iter().filter(|word| is_among(PRONOUNS, word.text)).count();
    single + words.windows(2).filter(|two| pair(two)).count()
}
