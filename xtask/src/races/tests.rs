use super::*;

/// Races need root for their namespaces. A race without them touches as little.
#[test]
fn whatever_else_is_in_the_named_directory_survives_a_race() {
    let top = Scratch::new(&std::env::temp_dir(), "race-test").unwrap();
    let named = top.path().join("disk");
    fs::create_dir(&named).unwrap();
    fs::write(named.join("photos"), "dear").unwrap();
    let race = |program: &str| {
        let built = Built { view: vec!["env"], program: program.into(), places: vec!["/no/such/place".into()] };
        tables(&built, &named, &["race-nfs", "--quick"])
    };
    let left = || fs::read_dir(&named).unwrap().map(|it| it.unwrap().path().display().to_string()).collect::<Vec<_>>();
    let said = race("echo").unwrap();
    assert!(said.ends_with(" /no/such/place race-nfs --quick\n"), "{said}: the words come after the places");
    assert_eq!(left().len(), 1, "the race's own files are gone: {:?}", left());
    let error = race("false").unwrap_err().to_string();
    assert!(
        left().iter().any(|path| error.ends_with(path)),
        "{error}: a race that failed leaves its logs: {:?}",
        left()
    );
    assert_eq!(fs::read_to_string(named.join("photos")).unwrap(), "dear");
}

#[test]
fn a_peer_without_its_source_is_named() {
    let error = example(Path::new("/nowhere/passthrough_hp.cc")).unwrap_err().to_string();
    assert!(error.contains("/nowhere/passthrough_hp.cc"), "{error}");
}
