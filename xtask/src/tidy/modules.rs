//! The modules of a crate, and the file that a path leads to.
//!
//! Owns: the module of each file, the names that `use` brings into a module, the way from a path to a file.
//! Does not own: circles (`circles`), the reading of Rust (`lexer`).
//! Invariants: a path is followed through the files that only pass its name on, to the file that declares the name. A
//! path that leaves the crate leads nowhere. Every search ends: it takes at most [`STEPS_MAX`] names.

use std::collections::{BTreeMap, BTreeSet};

use super::lexer::{self, Token};
use super::sources::is_test;
use crate::repository::TextFile;

/// Names on the way of one path. Two modules may pass a name to each other, which rustc refuses later.
const STEPS_MAX: usize = 16;

/// Words after which a name is declared.
const DECLARING: &[&str] = &["struct", "enum", "fn", "trait", "type", "const", "static", "union", "macro_rules"];

/// The modules from the crate's root to a file; the root has none.
pub(super) type ModulePath<'a> = Vec<&'a str>;

/// A file without tests.
#[derive(Default)]
struct Module<'a> {
    /// Each name that `use` brings into the file, with its path; `*` stands for all names.
    brought: Vec<(&'a str, Vec<&'a str>)>,
    declared: BTreeSet<&'a str>,
    /// Paths that the file's own code uses, without paths that the file only passes on.
    followed: Vec<Vec<&'a str>>,
}

/// The files of one crate.
#[derive(Default)]
pub(super) struct Modules<'a>(BTreeMap<ModulePath<'a>, Module<'a>>);

/// The crates by their folders.
pub(super) fn crates(files: &[TextFile]) -> BTreeMap<&str, Modules<'_>> {
    let mut crates: BTreeMap<&str, Modules<'_>> = BTreeMap::new();
    for file in files {
        let Some((name, place)) = place(&file.path) else { continue };
        // The library's root, read first, is the root of a crate that is also a program.
        crates.entry(name).or_default().0.entry(place).or_insert_with(|| read(&file.text));
    }
    crates
}

/// The crate and the module that a file is; nothing for tests, models and further programs.
fn place(path: &str) -> Option<(&str, ModulePath<'_>)> {
    let (name, inside) = path.split_once("/src/")?;
    if is_test(path) || path.ends_with("loom_models.rs") {
        return None;
    }
    let mut modules: ModulePath<'_> = inside.strip_suffix(".rs")?.split('/').collect();
    if modules.len() > 1 && modules.last() == Some(&"mod") || matches!(modules[..], ["lib" | "main"]) {
        modules.pop();
    }
    (modules.first() != Some(&"bin")).then_some((name, modules))
}

fn read(text: &str) -> Module<'_> {
    let mut module = Module::default();
    let mut passed = Vec::new();
    let mut code = Vec::new();
    let tokens = lexer::tokens(text);
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        // `impl Trait + use<T>` captures a type, and imports nothing.
        let captures = tokens.get(at + 1).is_some_and(|next| next.text == "<");
        if token.text != "use" || captures {
            code.push(*token);
            // `pub(in crate::x)` names who may look, and imports nothing.
            let is_scope = token.text == "(" && tokens.get(at + 1).is_some_and(|next| next.text == "in");
            let scope = tokens[at..].iter().position(|token| token.text == ")").filter(|_| is_scope);
            at += scope.unwrap_or(1);
            continue;
        }
        let end = tokens[at..].iter().position(|token| token.text == ";").map_or(tokens.len(), |len| at + len);
        let from = module.brought.len();
        tree(&tokens[at + 1..end], &mut 0, &[], &mut module.brought);
        // `pub use` and `pub(crate) use` pass on; any other `use` is for the code of the file.
        let is_passed = at > 0 && matches!(tokens[at - 1].text, "pub" | ")");
        let brought = module.brought[from..].iter().cloned();
        if is_passed {
            passed.extend(brought)
        } else {
            module.followed.extend(brought.map(|(_, path)| path))
        }
        at = end + 1;
    }
    let named = |name: &str| code.iter().any(|token| token.text == name);
    module.followed.extend(passed.into_iter().filter(|(name, _)| named(name)).map(|(_, path)| path));
    module.followed.extend(lexer::paths(&code).into_iter().map(|path| path.parts));
    let declares = |two: &[Token<'_>]| DECLARING.contains(&two[0].text);
    let plain = code.iter().filter(|token| token.text != "!").copied().collect::<Vec<_>>();
    module.declared.extend(plain.windows(2).filter(|two| declares(two)).map(|two| two[1].text));
    module
}

/// Reads a tree of `use`: each name that it brings in, with the path.
fn tree<'a>(tokens: &[Token<'a>], at: &mut usize, before: &[&'a str], found: &mut Vec<(&'a str, Vec<&'a str>)>) {
    let mut path = before.to_vec();
    while let Some(token) = tokens.get(*at) {
        *at += 1;
        match token.text {
            "::" => {}
            "{" => {
                while tokens.get(*at).is_some_and(|token| token.text != "}") {
                    tree(tokens, at, &path, found);
                }
                *at += 1;
                path.clear();
            }
            "}" => {
                *at -= 1;
                break;
            }
            "," => break,
            "as" => {
                let name = tokens.get(*at).map_or("_", |token| token.text);
                found.push((name, std::mem::take(&mut path)));
                *at += 1;
            }
            name => path.push(name),
        }
    }
    // `a::{self}` brings in `a`.
    if path.len() > 1 && path.last() == Some(&"self") {
        path.pop();
    }
    if path.len() > before.len() || (path.len() == before.len() && !path.is_empty()) {
        let name = path[path.len() - 1];
        found.push((name, path));
    }
}

impl<'a> Modules<'a> {
    /// Each file with the files of the crate that it names.
    pub(super) fn edges(&self) -> BTreeMap<ModulePath<'a>, BTreeSet<ModulePath<'a>>> {
        let named = |(from, module): (&ModulePath<'a>, &Module<'a>)| {
            let mut named: BTreeSet<ModulePath<'a>> =
                module.followed.iter().filter_map(|path| self.led(from, path, STEPS_MAX)).collect();
            named.remove(from);
            (from.clone(), named)
        };
        self.0.iter().map(named).collect()
    }

    /// The file that a path leads to, from a file.
    fn led(&self, from: &[&'a str], path: &[&'a str], steps: usize) -> Option<ModulePath<'a>> {
        let steps = steps.checked_sub(1)?;
        let ups = path.iter().take_while(|part| **part == "super").count();
        match path {
            ["crate", rest @ ..] => self.walked(&[], rest, steps),
            ["self", rest @ ..] => self.walked(from, rest, steps),
            _ if ups > 0 => self.walked(&from[..from.len().checked_sub(ups)?], &path[ups..], steps),
            [first, ..] => {
                let child = [from, &[*first]].concat();
                let is_here = self.0.contains_key(&child) || self.brings(from, first);
                is_here.then(|| self.walked(from, path, steps)).flatten()
            }
            [] => None,
        }
    }

    fn brings(&self, place: &[&'a str], name: &str) -> bool {
        self.0.get(place).is_some_and(|module| module.brought.iter().any(|(brought, _)| *brought == name))
    }

    /// The file that `rest` leads to, seen from inside the module `at`.
    fn walked(&self, at: &[&'a str], rest: &[&'a str], steps: usize) -> Option<ModulePath<'a>> {
        let steps = steps.checked_sub(1)?;
        if let [first, after @ ..] = rest
            && let child = [at, &[*first]].concat()
            && self.0.contains_key(&child)
        {
            return self.walked(&child, after, steps);
        }
        let module = self.0.get(at)?;
        let [first, after @ ..] = rest else { return Some(at.to_vec()) };
        if module.declared.contains(first) || *first == "*" {
            return Some(at.to_vec());
        }
        if let Some((_, path)) = module.brought.iter().find(|(name, _)| name == first) {
            // A path that begins with the name itself leaves the crate, as in `use x;`.
            return (path.first() != Some(first)).then(|| self.led(at, &[path, after].concat(), steps)).flatten();
        }
        let globs = module.brought.iter().filter(|(name, _)| *name == "*");
        let mut through = globs.filter_map(|(_, path)| self.led(at, &path[..path.len() - 1], steps));
        let declares = |place: &ModulePath<'a>| self.0.get(place).is_some_and(|module| module.declared.contains(first));
        Some(through.find(declares).unwrap_or_else(|| at.to_vec()))
    }
}
