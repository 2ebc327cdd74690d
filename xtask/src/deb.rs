//! The Debian packages: `afflux` and `afflux-lab`.
//!
//! Owns: the packages, their dependencies, their form.
//! Does not own: the files of `packaging/`, among them the list of each package's files and its control fields; manuals
//! and completions, which each command writes itself; the links of documents (`links`), the notices of others' crates
//! (`notices`).
//! Invariants: the same sources give the same package, to the byte, with the same tools. Nothing is written outside of
//! the build's folder.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::repository::{self, succeeds};
use crate::{ci, list, notices};

mod links;

/// The profile of the installed programs.
const PROFILE: &str = "dist";

/// Directories of an installed system, relative to its root.
const MANUALS: &str = "usr/share/man";
/// The section of commands, below the manuals.
const COMMANDS: &str = "man1";
/// For each shell: the directory of its completions, and the parts of a file's name before and after the command's
/// name.
const COMPLETIONS: [(&str, &str, &str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions", "", ""),
    ("zsh", "usr/share/zsh/vendor-completions", "_", ""),
    ("fish", "usr/share/fish/vendor_completions.d", "", ".fish"),
];

/// The program's own version, without a revision: the packaging is in the same repository (in Debian's terms it is a
/// native package).
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A package of the source.
struct Package {
    /// Its name, and its program's.
    name: &'static str,
    /// The crate of the program.
    krate: &'static str,
    /// Its features in a package.
    features: &'static str,
    /// The list of its files.
    installed: &'static str,
    /// Further names of manual pages: file below the manuals, and the page, both before compression.
    manuals: &'static [(&'static str, &'static str)],
    /// Files that a user changes, and an upgrade leaves alone.
    conffiles: &'static str,
    scripts: &'static [&'static str],
    /// Control fields that follow the fields of all packages.
    fields: &'static str,
}

const PACKAGES: [Package; 2] = [
    Package {
        name: "afflux",
        krate: "afflux-command",
        features: "object",
        installed: include_str!("../../packaging/debian/afflux.install"),
        manuals: &[
            ("man8/mount.fuse.afflux.8", "man1/afflux-mount.1"),
            ("man8/umount.fuse.afflux.8", "man1/afflux-umount.1"),
        ],
        conffiles: "/etc/afflux/config.toml\n/etc/default/afflux-govern\n",
        scripts: &["postinst", "prerm", "postrm"],
        fields: include_str!("../../packaging/debian/afflux.control"),
    },
    Package {
        name: "afflux-lab",
        krate: "afflux-lab",
        features: "",
        installed: include_str!("../../packaging/debian/afflux-lab.install"),
        manuals: &[],
        conffiles: "",
        scripts: &[],
        fields: include_str!("../../packaging/debian/afflux-lab.control"),
    },
];

/// Builds the programs and the packages, and says where these are.
pub(crate) fn run(profile: Option<&str>) -> Result<()> {
    let profile = profile.unwrap_or(PROFILE);
    PACKAGES.iter().try_for_each(|package| package.build(profile).map(drop))
}

/// Builds one program and its package. Returns the package's file.
pub(crate) fn package(name: &str, profile: &str) -> Result<PathBuf> {
    named(name)?.build(profile)
}

/// Packs a program that is in `folder`, without its symbols and without compression: for a test. Returns the package's
/// file, which is below `place`.
pub(crate) fn packed(name: &str, folder: &Path, place: &Path) -> Result<PathBuf> {
    let strip = |program: &Path| succeeds(Command::new("strip").arg(program));
    named(name)?.pack(folder, place, "-Znone", strip)
}

fn named(name: &str) -> Result<&'static Package> {
    PACKAGES.iter().find(|package| package.name == name).context("there is no such package")
}

impl Package {
    /// Builds the program and the package. Returns the package's file.
    fn build(&self, profile: &str) -> Result<PathBuf> {
        let Self { krate, features, .. } = *self;
        let folder = repository::build(profile, &["-p", krate, "--features", features])?;
        self.pack(&folder, &repository::target().join("deb"), "-Zxz", |_| Ok(()))
    }

    /// Packs the program that is in `folder`, after `change` of its copy. Returns the package's file, which is below
    /// `place`.
    fn pack(
        &self,
        folder: &Path,
        place: &Path,
        compression: &str,
        change: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<PathBuf> {
        for tool in ["dpkg-deb", "dpkg-shlibdeps", "gzip"] {
            if !ci::on_path(tool) {
                bail!("{tool} is not there: apt-get install dpkg-dev");
            }
        }
        let name = self.name;
        let tree = place.join(name);
        if tree.exists() {
            fs::remove_dir_all(&tree)?;
        }
        put(&folder.join(name), &tree.join("usr/bin"), name, 0o755)?;
        change(&tree.join("usr/bin").join(name))?;
        let top = tree.to_str().context("the build's folder has an odd name")?;
        self.describe(&tree)?;
        for [source, directory, name] in self.files() {
            let from = repository::root().join(source);
            let is_program = fs::metadata(&from).is_ok_and(|found| found.permissions().mode() & 0o100 != 0);
            put(&from, &tree.join(directory), name, if is_program { 0o755 } else { 0o644 })?;
        }
        let documents = tree.join("usr/share/doc").join(name);
        for source in self.documents() {
            self.put_document(source, &documents.join(source))?;
        }
        fs::write(documents.join("changelog"), self.changelog()?)?;
        fs::write(documents.join("NOTICES"), notices::of(self.krate, self.features)?)?;
        self.compress(&tree)?;
        self.link_manuals(&tree)?;

        let depends = libraries(place, &tree.join("usr/bin").join(name))?;
        let architecture = repository::output(Command::new("dpkg").args(["--print-architecture"]))?;
        let control = tree.join("DEBIAN");
        fs::create_dir_all(&control)?;
        fs::write(control.join("control"), self.control(&architecture, &depends, kib(&tree)?))?;
        if !self.conffiles.is_empty() {
            fs::write(control.join("conffiles"), self.conffiles)?;
        }
        for script in self.scripts {
            put(&repository::root().join("packaging/debian").join(script), &control, script, 0o755)?;
        }
        fs::write(control.join("md5sums"), sums(&tree)?)?;
        readable(&tree)?;

        let package = place.join(format!("{name}_{VERSION}_{architecture}.deb"));
        let file = package.to_str().context("the build's folder has an odd name")?;
        let date = repository::output(Command::new("git").args(["log", "-1", "--format=%ct"]))?;
        let mut build = Command::new("dpkg-deb");
        build.args(["--root-owner-group", compression, "--build", top, file]).env("SOURCE_DATE_EPOCH", date);
        succeeds(&mut build)?;
        let (binary, whole) = (fs::metadata(tree.join("usr/bin").join(name))?.len(), fs::metadata(&package)?.len());
        println!("{file}: {whole} bytes, the binary in it {binary}");
        Ok(package)
    }

    /// Files that are copied unchanged: path in the repository, directory of the system, name in that directory.
    fn files(&self) -> impl Iterator<Item = [&'static str; 3]> {
        list::rows(self.installed).filter(|[_, directory, _]| !directory.is_empty())
    }

    /// Documents, which stand to each other as in the repository.
    fn documents(&self) -> impl Iterator<Item = &'static str> {
        list::rows(self.installed).filter(|[_, directory, _]| directory.is_empty()).map(|[source, ..]| source)
    }

    /// Copies a document. Of its links, those to other installed documents stay.
    fn put_document(&self, source: &str, to: &Path) -> Result<()> {
        let text = fs::read_to_string(repository::root().join(source)).context(source.to_owned())?;
        let is_page = source.ends_with(".md");
        let text = if is_page {
            links::kept(&text, source, |path| self.documents().any(|document| document == path))
        } else {
            text
        };
        fs::create_dir_all(to.parent().context("a document is in a directory")?)?;
        Ok(fs::write(to, text)?)
    }

    /// Has the program write its manual pages and completions below `tree`.
    fn describe(&self, tree: &Path) -> Result<()> {
        let program = tree.join("usr/bin").join(self.name);
        succeeds(Command::new(&program).arg("man").arg(tree.join(MANUALS).join(COMMANDS)))?;
        for (shell, directory, before, after) in COMPLETIONS {
            let directory = tree.join(directory);
            fs::create_dir_all(&directory)?;
            let file = File::create(directory.join(format!("{before}{}{after}", self.name)))?;
            succeeds(Command::new(&program).args(["completions", shell]).stdout(file))?;
        }
        Ok(())
    }

    fn control(&self, architecture: &str, depends: &str, installed_kib: u64) -> String {
        let depends = if depends.is_empty() { String::new() } else { format!("Depends: {depends}\n") };
        format!(
            "Package: {}\nSource: afflux\nVersion: {VERSION}\nArchitecture: {architecture}\nMaintainer: The Afflux \
             authors <afflux@example.org>\nPriority: optional\n{depends}Installed-Size: {installed_kib}\n{}",
            self.name, self.fields
        )
    }

    fn changelog(&self) -> Result<String> {
        let date = repository::output(Command::new("git").args(["log", "-1", "--format=%cD"]))?;
        Ok(format!(
            "{} ({VERSION}) unstable; urgency=medium\n\n  * As built from the sources.\n\n -- The Afflux authors \
             <afflux@example.org>  {date}\n",
            self.name
        ))
    }

    /// Manuals, notices and the changelog, as Debian has them.
    fn compress(&self, tree: &Path) -> Result<()> {
        let documents = tree.join("usr/share/doc").join(self.name);
        let mut files = ["changelog", "NOTICES"].map(|name| documents.join(name)).to_vec();
        for page in fs::read_dir(tree.join(MANUALS).join(COMMANDS))? {
            files.push(page?.path());
        }
        files.sort();
        succeeds(Command::new("gzip").args(["-9", "-n"]).args(files))
    }

    /// Gives compressed pages their further names.
    fn link_manuals(&self, tree: &Path) -> Result<()> {
        let manuals = tree.join(MANUALS);
        for (name, page) in self.manuals {
            let page = format!("{page}.gz");
            if !manuals.join(&page).exists() {
                bail!("{name}: there is no manual page {page}");
            }
            let link = manuals.join(format!("{name}.gz"));
            fs::create_dir_all(link.parent().context("a manual page has a section")?)?;
            symlink(Path::new("..").join(page), link)?;
        }
        Ok(())
    }
}

/// The packages of the libraries that a program needs.
fn libraries(place: &Path, binary: &Path) -> Result<String> {
    // The tool expects a source package around it.
    fs::create_dir_all(place.join("debian"))?;
    fs::write(place.join("debian/control"), "Source: afflux\n\nPackage: afflux\nArchitecture: any\n")?;
    let mut tool = Command::new("dpkg-shlibdeps");
    tool.args(["-O", "--ignore-missing-info", "--warnings=0"]).arg(binary).current_dir(place);
    let found = tool.output().context("dpkg-shlibdeps")?;
    if !found.status.success() {
        bail!("dpkg-shlibdeps: {}", String::from_utf8_lossy(&found.stderr).trim());
    }
    let text = String::from_utf8_lossy(&found.stdout);
    Ok(text.trim().strip_prefix("shlibs:Depends=").unwrap_or_default().to_owned())
}

/// Copies one file to a directory, which is created.
fn put(from: &Path, directory: &Path, name: &str, mode: u32) -> Result<()> {
    fs::create_dir_all(directory)?;
    let to = directory.join(name);
    fs::copy(from, &to).with_context(|| from.display().to_string())?;
    fs::set_permissions(&to, fs::Permissions::from_mode(mode))?;
    Ok(())
}

/// Sets permissions that do not depend on the builder's umask: all users can read every file, only the owner can write.
fn readable(tree: &Path) -> Result<()> {
    for path in repository::below(tree, &[])? {
        let mode = fs::metadata(&path)?.permissions().mode();
        let mode = if path.is_dir() || mode & 0o100 != 0 { 0o755 } else { 0o644 };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
    }
    Ok(())
}

/// Checksum and path of each installed file that is no configuration file, for `dpkg --verify`.
fn sums(tree: &Path) -> Result<String> {
    let control = tree.join("DEBIAN");
    let is_kept = |path: &&PathBuf| {
        path.is_file() && !path.is_symlink() && !path.starts_with(&control) && !path.starts_with(tree.join("etc"))
    };
    let mut files: Vec<PathBuf> = repository::below(tree, &[])?
        .iter()
        .filter(is_kept)
        .filter_map(|path| Some(path.strip_prefix(tree).ok()?.to_owned()))
        .collect();
    files.sort();
    let sums = Command::new("md5sum").args(files).current_dir(tree).output().context("md5sum")?;
    if !sums.status.success() {
        bail!("md5sum: {}", String::from_utf8_lossy(&sums.stderr).trim());
    }
    Ok(String::from_utf8(sums.stdout)?)
}

/// The installed size of a tree, in KiB.
fn kib(tree: &Path) -> Result<u64> {
    let mut total = 0;
    for path in repository::below(tree, &[])? {
        total += if path.is_file() { fs::metadata(&path)?.len().div_ceil(1024) } else { 1 };
    }
    Ok(total)
}

#[cfg(test)]
mod tests;
