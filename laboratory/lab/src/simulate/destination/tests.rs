use std::path::Path;

use super::check_writable;

#[test]
fn a_file_that_could_not_be_written_is_refused_before_the_run() {
    assert!(check_writable(Path::new("run.html")).is_ok());
    let said = check_writable(Path::new("/none/run.html")).unwrap_err().to_string();
    assert_eq!(said, "/none/run.html cannot be written: there is no directory /none");
    let said = check_writable(Path::new("/tmp")).unwrap_err().to_string();
    assert_eq!(said, "/tmp is a directory; name a file in it");
}
