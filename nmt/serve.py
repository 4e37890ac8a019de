"""Serve finished runs over HTTP: translation for programs, attention for people.

python -m nmt.serve 'run_dirs=[PATH]'                         http://127.0.0.1:8000
python -m nmt.serve 'run_dirs=[runs]' port=5000 max_models=2  every finished run inside a folder
curl -d q=Hello -d source=en -d target=vi http://127.0.0.1:8000/translate
"""

from nmt.cli.command import command

if __name__ == "__main__":
    command("serve", __doc__, "nmt.commands.serve:serve")
