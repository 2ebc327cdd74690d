use super::{joined, quoted};

#[test]
fn a_shell_reads_the_same_words() {
    let words = ["simulate", "my job.fio", "it's", "", "--set=budget_ms=2500", "$HOME", "/a-b_c.d"].map(str::to_owned);
    let text = joined("afflux-lab", &words);
    assert_eq!(text, r"afflux-lab simulate 'my job.fio' 'it'\''s' '' --set=budget_ms=2500 '$HOME' /a-b_c.d");
    assert_eq!(quoted("it's \u{1b}"), r"$'it\'s \u001b'", "no terminal obeys it");
}
