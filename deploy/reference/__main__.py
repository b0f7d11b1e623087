"""`python -m deploy.reference`: write what code says into the pages of docs/."""

from deploy.reference.pages import main

main()
