use super::*;

#[test]
fn wrong_words_are_refused() {
    assert!(wanted(&["--quick"]).unwrap().quick);
    assert_eq!(wanted(&["--profile", "demo"]).unwrap().profile, "demo");
    assert!(wanted(&["--profile"]).is_err() && wanted(&["fast"]).is_err());
}

/// `unshare` needs root. Without it this race fails, too, and touches nothing either.
#[test]
fn whatever_else_is_in_the_named_directory_survives_a_race() {
    let top = Scratch::new(&std::env::temp_dir(), "race-nfs-test").unwrap();
    let named = top.path().join("disk");
    fs::create_dir(&named).unwrap();
    fs::write(named.join("photos"), "dear").unwrap();
    let wanted = wanted(&["--dir", named.to_str().unwrap()]).unwrap();
    let programs =
        |race: &str| Programs { afflux: race.into(), race: race.into(), bridge: race.into(), bare: race.into() };
    let ended = table(&programs("true"), &wanted).is_ok();
    let error = table(&programs("false"), &wanted).unwrap_err().to_string();
    assert_eq!(fs::read_to_string(named.join("photos")).unwrap(), "dear");
    let left: Vec<String> = fs::read_dir(&named).unwrap().map(|it| it.unwrap().path().display().to_string()).collect();
    assert_eq!(left.len(), if ended { 2 } else { 3 }, "{left:?}: a race that failed leaves its logs");
    assert!(left.iter().any(|path| error.ends_with(path)), "{error}: {left:?}");
}
