//! redb on a cache: `redb DATABASE put KEY VALUE`, `get KEY`, `list`, `check`.
//!
//! The part that a program copies is `backend.rs` beside this file. Its test kills a writer again and again.
#![allow(clippy::print_stdout, reason = "a command")]

mod backend;

use std::error::Error;
use std::path::Path;

use afflux::Cache;
use backend::CacheBackend;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};

const WORDS: TableDefinition<'_, &str, &str> = TableDefinition::new("words");

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let Some((path, command)) = words.split_first() else { return Err(USAGE.into()) };
    let cache = Cache::builder().memory(64 << 20).build()?;
    let storage = CacheBackend::create(&cache, Path::new(path))?;
    let mut database = Database::builder().set_cache_size(1 << 20).create_with_backend(storage)?;
    match command {
        ["put", key, value] => {
            let change = database.begin_write()?;
            change.open_table(WORDS)?.insert(key, value)?;
            // The word is durable when this returns.
            change.commit()?;
        }
        ["get", key] => {
            let found = database.begin_read()?.open_table(WORDS)?.get(key)?;
            println!("{}", found.ok_or_else(|| format!("no {key}"))?.value());
        }
        ["list"] => {
            for entry in database.begin_read()?.open_table(WORDS)?.iter()? {
                println!("{}", entry?.0.value());
            }
        }
        ["check"] => println!("{}", if database.check_integrity()? { "intact" } else { "repaired" }),
        _ => return Err(USAGE.into()),
    }
    drop(database);
    Ok(cache.close()?)
}

const USAGE: &str = "redb DATABASE put KEY VALUE | get KEY | list | check";
