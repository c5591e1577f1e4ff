//! Shell tasks with real bash and real processes, asked for over the supervisor's socket.

mod bounds;
mod ends;
mod lost;
mod mail;
mod stage;
