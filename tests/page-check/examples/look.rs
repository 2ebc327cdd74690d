//! Looks at pages in a browser and prints their faults: `look PICTURES FILE...`. Pictures go to the folder PICTURES.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "printing is its purpose")]

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

use afflux_page_check::{CheckError, Checker};

fn main() -> Result<ExitCode, CheckError> {
    let mut places = env::args_os().skip(1).map(PathBuf::from);
    let pictures = places.next();
    let mut checker = Checker::start()?;
    let mut faults = 0;
    for page in places {
        let found = checker.check(&page, pictures.as_deref())?;
        for fault in &found {
            println!("{}: {fault}", page.display());
        }
        faults += found.len();
    }
    Ok(if faults == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
