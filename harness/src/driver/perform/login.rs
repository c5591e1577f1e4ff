//! Logins: the watch for a login, and the dialogue of an operator.

use std::sync::Arc;

use super::Performer;
use crate::driver::{check, login};
use crate::login::DirSnapshot;
use crate::turn::input::{Input, LoginWanted};

impl Performer {
    pub(super) fn watch_login(&mut self) {
        Self::abort(&mut self.login);
        let dir = self.config.home_dir.join(".claude");
        let (config, runner) = (Arc::clone(&self.config), self.runner.clone());
        let wait = async move {
            runner.end_resident().await;
            let first = DirSnapshot::capture(&dir);
            crate::login::wait(&dir, first, || check::is_logged_in(&config)).await;
            Input::LoggedIn
        };
        self.login = Some(self.local(wait));
    }

    pub(super) fn log_in(&mut self, wanted: LoginWanted) {
        // The dialogue's own writes are no login before it reports one.
        Self::abort(&mut self.login);
        let dialogue =
            login::hold(self.link.clone(), Arc::clone(&self.config), self.runner.clone(), wanted);
        self.local(async move { Input::LoginEnded(dialogue.await) });
    }
}
