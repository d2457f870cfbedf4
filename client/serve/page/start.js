// The form for a new session: its task, and optionally a repository.

function showStart() {
  closeSession();
  showProblem();
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
  void perform($("begin"), async () => {
    const { id } = await request("POST", "sessions", repo ? { task, repo } : { task });
    $("start").reset();
    openSession(id);
  });
});
