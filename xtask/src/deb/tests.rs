use std::io::Write;

use super::*;

#[test]
fn each_installed_helper_has_a_manual_page() {
    for package in &PACKAGES {
        for (_, directory, name) in package.files.iter().filter(|(_, directory, _)| directory.ends_with("bin")) {
            let page = format!("man8/{name}.8");
            assert!(package.manuals.iter().any(|(link, _)| *link == page), "{directory}/{name} has no {page}");
        }
    }
}

#[test]
fn a_further_name_of_a_manual_page_leads_to_it() {
    let scratch = afflux_scratch::Scratch::new(&std::env::temp_dir(), "manuals").unwrap();
    let package = named("afflux").unwrap();
    let told = package.link_manuals(scratch.path()).unwrap_err().to_string();
    assert!(told.contains("there is no manual page"), "{told}");
    let manuals = scratch.path().join(MANUALS);
    fs::create_dir_all(manuals.join(COMMANDS)).unwrap();
    package.manuals.iter().for_each(|(_, page)| fs::write(manuals.join(format!("{page}.gz")), page).unwrap());
    package.link_manuals(scratch.path()).unwrap();
    for (name, page) in package.manuals {
        assert_eq!(fs::read_to_string(manuals.join(format!("{name}.gz"))).unwrap(), *page);
    }
    // dpkg checks files alone.
    assert!(!sums(scratch.path()).unwrap().contains("man8"));
}

#[test]
fn a_mount_point_with_any_name_is_one_word_of_the_units_shell() {
    let unit = fs::read_to_string(repository::root().join("packaging/afflux-mount@.service")).unwrap();
    let line = unit.lines().find_map(|line| line.strip_prefix("ExecStartPre=-/bin/sh -c '")).unwrap();
    // systemd has `$$` for a dollar, and the path of %f as one word.
    let script = line.strip_suffix("' %f").unwrap().replace("$$", "$");
    let scratch = afflux_scratch::Scratch::new(&std::env::temp_dir(), "unit").unwrap();
    let umount = scratch.path().join("umount");
    let mut file = File::create(&umount).unwrap();
    file.write_all(b"#!/bin/sh\nprintf '%s\\n' \"$@\" > unmounted\n").unwrap();
    drop(file);
    fs::set_permissions(&umount, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", scratch.path().display(), std::env::var("PATH").unwrap());
    for point in
        ["/nowhere/it's", "/nowhere/\"a\" b", "/nowhere/$(touch planted)", "/nowhere/; touch planted;", "/nowhere/*"]
    {
        let mut shell = Command::new("/bin/sh");
        let ended = shell.args(["-c", &script, point]).env("PATH", &path).current_dir(scratch.path()).status().unwrap();
        assert!(ended.success(), "{point}: {ended}");
        assert_eq!(fs::read_to_string(scratch.path().join("unmounted")).unwrap(), format!("-l\n--\n{point}\n"));
    }
    assert!(!scratch.path().join("planted").exists(), "a name was run");
}
