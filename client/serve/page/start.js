// A new session: its task, and a repository if it works on one.

function showStart() {
  closeSession();
  tell();
  document.body.classList.add("open");
  $("empty").hidden = true;
  $("start").hidden = false;
  $("task").focus();
}

$("new").addEventListener("click", showStart);
$("start").addEventListener("submit", (event) => {
  event.preventDefault();
  const [task, repo] = [$("task").value.trim(), $("repo").value.trim()];
  if (!task) return;
  void act($("begin"), async () => {
    const { id } = await request("POST", "sessions", repo ? { task, repo } : { task });
    $("start").reset();
    openSession(id);
  });
});
