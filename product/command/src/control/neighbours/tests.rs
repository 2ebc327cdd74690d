use super::*;

#[test]
fn a_server_of_another_user_is_told_from_other_programs() {
    let scratch = afflux_scratch::Scratch::new(&std::env::temp_dir(), "neighbours").unwrap();
    let process = |pid: &str, words: &str| {
        fs::create_dir(scratch.path().join(pid)).unwrap();
        fs::write(scratch.path().join(pid).join("cmdline"), words.replace(' ', "\0")).unwrap();
    };
    process("12", "/usr/bin/afflux serve /srv ");
    process("7", "afflux serve /srv ");
    process("8", "afflux stat ");
    process("9", "vi afflux serve ");
    process("self", "afflux serve ");
    let uid = fs::metadata(scratch.path()).unwrap().uid();
    assert_eq!(servers(scratch.path(), uid), [], "this user's servers are found by their sockets");
    let found = servers(scratch.path(), uid + 1);
    assert_eq!(found, [Neighbour { pid: 7, uid }, Neighbour { pid: 12, uid }]);
}
