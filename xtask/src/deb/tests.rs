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
