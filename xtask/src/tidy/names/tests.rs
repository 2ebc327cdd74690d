use super::*;

fn file(path: &str, text: &str) -> TextFile {
    TextFile { path: path.to_owned(), text: text.to_owned() }
}

#[test]
fn a_question_is_a_function_that_returns_a_bool_and_needs_its_word() {
    let wrong = |text: &str| !misnamed(&file("product/a/src/b.rs", text)).is_empty();
    for text in [
        "fn begins(&self) -> bool { true }",
        "pub(crate) fn begins<T: Fn() -> bool>(look: impl Fn(u64) -> bool) -> bool where T: Copy { true }",
        "trait A { fn isolated(&self) -> bool; }",
        "fn inserts(self) -> bool { true }",
    ] {
        assert!(wrong(text), "{text}");
    }
    for text in [
        "fn is_begun(&self) -> bool { true }",
        "fn may_wake<T: Fn() -> bool>(look: T) -> bool { look() }",
        "fn begins(look: impl Fn() -> bool) -> u64 { 1 }",
        "fn begins(&self) -> Option<bool> { None }",
        "fn begins() { let _ = |a: u64| -> bool { true }; }",
        "fn begins() -> impl Fn() -> bool { || true }",
        "// fn begins() -> bool {",
        "fn insert(&mut self, name: &str) -> bool { true }",
        "fn adapts(&mut self, page: u16) -> bool { true }",
        "pub(super) async fn wait_for_space(&self) -> bool { true }",
        "fn take_mark(&self) -> bool { true }",
        "impl PartialEq for A { fn eq(&self, other: &Self) -> bool { true } }",
    ] {
        assert!(!wrong(text), "{text}");
    }
}

#[test]
fn a_command_is_no_question_it_changes_its_object_or_waits_or_returns_no_bool() {
    let wrong = |text: &str| !misleading(&file("product/a/src/b.rs", text)).is_empty();
    for text in [
        "fn may_admit_one(&mut self, now_ns: u64) -> bool { true }",
        "fn is_tried<'a>(&'a mut self) -> bool { true }",
        "fn is_emptied(&mut self, prices: Prices) { }",
        "pub(crate) async fn has_waited(&self) -> bool { true }",
        "fn may_answer(&self) -> impl Future<Output = Result<bool, Error>> + Send;",
        "fn may_write(&self) -> Result<(), Error> { Ok(()) }",
        "fn may_carry(&self, frame: FrameId) -> Sectors { all }",
        "fn has_size(&self, bytes: u64) { }",
        "fn must_wait(look: impl Fn() -> bool) -> u64 { 1 }",
    ] {
        assert!(wrong(text), "{text}");
    }
    for text in [
        "fn is_begun(&self, mut at: u64) -> bool { true }",
        "fn is_begun(mut self) -> bool { true }",
        "fn is_inside(&self, to: &mut Writer) -> Result<bool, Error> { Ok(true) }",
        "fn has_quotas() -> Option<bool> where A: B { None }",
        "fn try_wait(&mut self) -> u64 { 1 }",
        "async fn do_work(&mut self) { }",
        "fn may() { }",
        "type Look = fn(&mut u64) -> u64;",
    ] {
        assert!(!wrong(text), "{text}");
    }
}

#[test]
fn a_name_of_the_product_has_one_type_that_others_see_and_any_number_that_they_do_not() {
    let files = [
        file("product/a/src/b.rs", "pub struct Window;"),
        file("product/b/src/b.rs", "pub(in crate::a) enum Window { A }"),
        file("product/b/src/c.rs", "pub(super) trait Seam {} struct Window;"),
        file("product/c/src/c.rs", "trait Seam {}"),
        file("world/c/src/c.rs", "pub trait Seam {}"),
        file("product/c/src/c/tests.rs", "pub trait Seam {}"),
    ];
    let said = |list: &str| -> Vec<String> {
        check(&files, list).unwrap().into_iter().map(|violation| violation.place).collect()
    };
    assert_eq!(said(""), ["Window"]);
    assert_eq!(said("shared Window 2\n"), Vec::<String>::new());
    assert_eq!(said("shared Window 1\n"), ["Window"]);
    assert!(read("shared Window\n").is_err() && read("shared Window two\n").is_err());
}

#[test]
fn renewing_lowers_figures_and_raises_none() {
    let files = [file("product/a/src/b.rs", "fn begins() -> bool { true } fn ends() -> bool { true }")];
    let renewed = |list: &str| renewed(&files, list).unwrap().lines().skip(4).collect::<Vec<_>>().join(" ");
    assert_eq!(renewed("questions product/a 5\nquestions product/b 1\n"), "questions product/a 2");
    assert_eq!(renewed("questions product/a 1 for now\n"), "questions product/a 1 for now");
    assert_eq!(renewed("questions product/a 5 for now\n"), "questions product/a 2 for now", "the reason stays");
    assert_eq!(check(&files, "questions product/a 1\n").unwrap().len(), 1);
    let files = [file("product/a/src/b.rs", "fn is_set(&self, at: u64) { }")];
    let told = check(&files, "questions product/a 1\n").unwrap();
    assert!(told[0].text.contains("is_set"), "a command is counted for itself");
}
