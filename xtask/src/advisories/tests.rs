use afflux_scratch::Scratch;

use super::*;

fn git(folder: &std::path::Path, words: &[&str]) {
    let mut git = Command::new("git");
    git.arg("-C").arg(folder).args(["-c", "user.name=a", "-c", "user.email=a@example.org"]);
    assert!(git.args(words).status().unwrap().success());
}

#[test]
fn a_list_that_cannot_be_read_is_told_with_gits_reason_and_the_remedy() {
    let scratch = Scratch::new(&std::env::temp_dir(), "advisories").unwrap();
    let list = scratch.path().join("list");
    let url = format!("file://{}", list.display());
    let told = check_readable(&url).unwrap_err().to_string();
    for part in ["were not checked", "does not appear to be a git repository", "url.COPY.insteadOf", &url] {
        assert!(told.contains(part), "no '{part}' in {told}");
    }
    std::fs::create_dir(&list).unwrap();
    git(&list, &["init", "--quiet", "--initial-branch", "other"]);
    git(&list, &["commit", "--quiet", "--allow-empty", "-m", "first"]);
    let told = check_readable(&url).unwrap_err().to_string();
    assert!(told.contains("it has no branch main"), "{told}");
    git(&list, &["branch", "main"]);
    check_readable(&url).unwrap();
}
