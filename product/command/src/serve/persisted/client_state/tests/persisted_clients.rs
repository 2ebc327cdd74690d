use super::super::*;

#[test]
fn a_list_has_a_bound_of_names_and_a_list_beyond_it_is_no_empty_list() {
    let scratch = afflux_scratch::Scratch::new(&std::env::temp_dir(), "names").unwrap();
    let path = scratch.path().join("nfs-clients");
    assert!(read_names(&path).unwrap().is_empty(), "a missing file");
    let names = |count: usize| "00000000000000ff\n".repeat(count);
    private_directory::replace(&path, &names(65_536)).unwrap();
    assert_eq!(read_names(&path).unwrap(), vec![255; 65_536]);
    private_directory::replace(&path, &names(65_537)).unwrap();
    assert!(read_names(&path).unwrap_err().to_string().contains("more than 65536 names"));
    private_directory::replace(&path, "00000000000000ff\n\nx\n").unwrap();
    assert!(read_names(&path).unwrap_err().to_string().contains("no client's name"));
}
