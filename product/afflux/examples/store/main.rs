//! A log-structured key-value store on a cache: `store DIRECTORY put KEY VALUE`, `get KEY`, `delete KEY`, `list`,
//! `compact`.
//!
//! The store itself is in `log.rs` beside this file: about 200 lines, killed a thousand times in its test.
#![allow(clippy::print_stdout, reason = "a command")]

mod log;

use std::io::{self, ErrorKind};
use std::path::Path;

use afflux::Cache;
use log::Store;

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let Some((directory, command)) = words.split_first() else { return Err(usage()) };
    let cache = Cache::builder().memory(64 << 20).build()?;
    let mut store = Store::open(&cache, Path::new(directory))?;
    match command {
        ["put", key, value] => {
            store.put(key.as_bytes(), value.as_bytes())?;
            store.sync()?;
        }
        ["get", key] => match store.get(key.as_bytes())? {
            Some(value) => println!("{}", String::from_utf8_lossy(&value)),
            None => return Err(io::Error::new(ErrorKind::NotFound, format!("no {key}"))),
        },
        ["delete", key] => {
            store.delete(key.as_bytes())?;
            store.sync()?;
        }
        ["list"] => store.keys().for_each(|key| println!("{}", String::from_utf8_lossy(key))),
        ["compact"] => println!("{} bytes came free", store.compact()?),
        _ => return Err(usage()),
    }
    drop(store);
    Ok(cache.close()?)
}

fn usage() -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, "store DIRECTORY put KEY VALUE | get KEY | delete KEY | list | compact")
}
