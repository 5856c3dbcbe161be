/** The page for an IP address that sent too many requests, with any status. */
export const CAPTCHA_PAGE = `<!DOCTYPE html>
<html>
  <head><title>Fake YouTube</title></head>
  <body>
    <p>There have been a great many requests from your network. Show that you are a person.</p>
    <form action="/das_captcha?fw=1" method="POST">
      <div class="g-recaptcha" data-sitekey="fake-youtube"></div>
      <input type="submit" value="Submit">
    </form>
  </body>
</html>
`;

/** The page for a visitor from the European Union without a consent cookie. */
export const CONSENT_PAGE = `<!DOCTYPE html>
<html lang="en">
  <head><title>Before you continue</title></head>
  <body>
    <form action="https://consent.youtube.com/s" method="POST" style="display:inline;">
      <input type="hidden" name="set_eom" value="true">
      <button>Reject all</button>
    </form>
  </body>
</html>
`;

export const NOT_FOUND_PAGE = `<!DOCTYPE html>
<html lang=en>
  <meta charset=utf-8>
  <title>Error 404 (Not Found)!!1</title>
  <p><b>404.</b> <ins>That’s an error.</ins>
</html>
`;
