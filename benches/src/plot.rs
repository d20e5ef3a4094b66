//! Where pictures of sweeps go.

use crate::{Result, mode::plot_path};
use cuzk_tune::plot;
use std::fs;

pub use cuzk_tune::plot::Line;

/// Writes a picture of this name beside criterion's own output, if pictures
/// are wanted.
///
/// # Errors
/// If there is nothing to draw, or the file cannot be written.
pub fn draw(name: &str, title: &str, y_label: &str, lines: &[Line]) -> Result<()> {
    let Some(path) = plot_path(name) else {
        return Ok(());
    };
    let svg = plot::svg(title, ["threads", y_label], lines)?;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(&path, svg)?;
    println!("plot: {}", path.display());
    Ok(())
}
